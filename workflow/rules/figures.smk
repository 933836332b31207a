# Figures, each with the numbers that it draws.


rule ablation:
    input:
        scores=lambda w: [cell.scores for cell in PLAN.tables.cells("ablation")],
        paper=CONFIG / "paper" / "abl.csv",
    output:
        figure=paths.FIGURE.replace("{figure}", "ablation"),
        picture=report(
            "results/{scale}/figures/ablation.png",
            caption="../report/ablation.rst",
            category="Figures",
            labels={"figure": "ablation"},
        ),
        numbers="results/{scale}/figures/ablation.csv",
        meta="results/{scale}/figures/ablation.meta.json",
    log:
        "results/{scale}/logs/figures/ablation.log",
    localrule: True
    conda:
        "../../environment.yml"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        job=job_of("ablation"),
    shell:
        "epcore ablation {params.job:q} > {log:q} 2>&1"


rule alpha:
    input:
        features=features_of(PLAN.figures.alpha_runs),
        episodes=episodes_of(PLAN.figures.alpha_runs),
    output:
        figure=paths.FIGURE.replace("{figure}", "alpha"),
        picture=report(
            "results/{scale}/figures/alpha.png",
            caption="../report/alpha.rst",
            category="Figures",
            labels={"figure": "alpha"},
        ),
        numbers="results/{scale}/figures/alpha.csv",
        meta="results/{scale}/figures/alpha.meta.json",
    log:
        "results/{scale}/logs/figures/alpha.log",
    localrule: True
    conda:
        "../../environment.yml"
    threads: THREADS
    resources:
        mem_mb=2000,
        runtime=30,
    params:
        job=job_of("alpha"),
    shell:
        "epcore alpha {params.job:q} > {log:q} 2>&1"


rule two_moons:
    output:
        figure=paths.FIGURE.replace("{figure}", "two-moons"),
        picture=report(
            "results/{scale}/figures/two-moons.png",
            caption="../report/two-moons.rst",
            category="Figures",
            labels={"figure": "two moons"},
        ),
        drawn="results/{scale}/figures/two-moons.csv",
        numbers="results/{scale}/figures/two-moons-numbers.csv",
        meta="results/{scale}/figures/two-moons.meta.json",
    log:
        "results/{scale}/logs/figures/two-moons.log",
    localrule: True
    conda:
        "../../environment.yml"
    threads: 1
    resources:
        mem_mb=1500,
        runtime=15,
    params:
        job=job_of("two-moons"),
    shell:
        "epcore two-moons {params.job:q} > {log:q} 2>&1"


rule decision_boundary:
    output:
        figure=paths.FIGURE.replace("{figure}", "decision-boundary"),
        picture=report(
            "results/{scale}/figures/decision-boundary.png",
            caption="../report/decision-boundary.rst",
            category="Figures",
            labels={"figure": "decision boundary"},
        ),
        drawn="results/{scale}/figures/decision-boundary.csv",
        numbers="results/{scale}/figures/decision-boundary-numbers.csv",
        meta="results/{scale}/figures/decision-boundary.meta.json",
    log:
        "results/{scale}/logs/figures/decision-boundary.log",
    localrule: True
    conda:
        "../../environment.yml"
    threads: 1
    resources:
        mem_mb=1500,
        runtime=15,
    params:
        job=job_of("decision-boundary"),
    shell:
        "epcore decision-boundary {params.job:q} > {log:q} 2>&1"


rule interpolation:
    input:
        features=features_of(PLAN.figures.interpolation_runs),
        episodes=episodes_of(PLAN.figures.interpolation_runs),
    output:
        figure=paths.FIGURE.replace("{figure}", "interpolation"),
        picture=report(
            "results/{scale}/figures/interpolation.png",
            caption="../report/interpolation.rst",
            category="Figures",
            labels={"figure": "interpolation"},
        ),
        drawn="results/{scale}/figures/interpolation.csv",
        numbers="results/{scale}/figures/interpolation-numbers.csv",
        meta="results/{scale}/figures/interpolation.meta.json",
    log:
        "results/{scale}/logs/figures/interpolation.log",
    localrule: True
    conda:
        "../../environment.yml"
    threads: THREADS
    resources:
        mem_mb=2000,
        runtime=30,
    params:
        job=job_of("interpolation"),
    shell:
        "epcore interpolation {params.job:q} > {log:q} 2>&1"


rule plot:
    input:
        lambda w: expand(paths.TABLE_CSV, scale=SCALE, table=PLAN.plots.tables(w.plot)),
    output:
        figure=paths.FIGURE.replace("{figure}", "{plot}"),
        picture=report(
            "results/{scale}/figures/{plot}.png",
            caption="../report/plot.rst",
            category="Figures",
            labels={"figure": "{plot}"},
        ),
        numbers="results/{scale}/figures/{plot}.csv",
        meta="results/{scale}/figures/{plot}.meta.json",
    log:
        "results/{scale}/logs/figures/{plot}.log",
    localrule: True
    conda:
        "../../environment.yml"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        job=job_of("plot"),
    shell:
        "epcore plot {params.job:q} > {log:q} 2>&1"


rule curves:
    input:
        lambda w: PLAN.curves.files(w.curves),
    output:
        figure=paths.FIGURE.replace("{figure}", "{curves}"),
        picture=report(
            "results/{scale}/figures/{curves}.png",
            caption="../report/curves.rst",
            category="Training curves",
            labels={"figure": "{curves}"},
        ),
        numbers="results/{scale}/figures/{curves}.csv",
        meta="results/{scale}/figures/{curves}.meta.json",
    log:
        "results/{scale}/logs/figures/{curves}.log",
    localrule: True
    conda:
        "../../environment.yml"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        job=job_of("curves"),
    shell:
        "epcore curves {params.job:q} > {log:q} 2>&1"


rule gap:
    input:
        lambda w: [
            paths.curve(c)
            for p in PLAN.curves.gap().pairs
            for c in (p.checkpoint, p.baseline)
        ],
    output:
        figure=paths.FIGURE.replace("{figure}", "gap"),
        picture=report(
            "results/{scale}/figures/gap.png",
            caption="../report/gap.rst",
            category="Training curves",
            labels={"figure": "gap"},
        ),
        numbers="results/{scale}/figures/gap.csv",
        meta="results/{scale}/figures/gap.meta.json",
    log:
        "results/{scale}/logs/figures/gap.log",
    localrule: True
    conda:
        "../../environment.yml"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        job=job_of("gap"),
    shell:
        "epcore gap {params.job:q} > {log:q} 2>&1"


rule environment:
    input:
        PLAN.job_metas,
    output:
        report(
            paths.ENVIRONMENT,
            caption="../report/environment.rst",
            category="Environment",
            labels={"page": "environment"},
        ),
    log:
        "results/{scale}/logs/environment.log",
    localrule: True
    conda:
        "../../environment.yml"
    threads: 1
    resources:
        mem_mb=500,
        runtime=5,
    params:
        job=job_of("environment"),
    shell:
        "epcore environment {params.job:q} > {log:q} 2>&1"


rule speed:
    input:
        lambda w: [
            file
            for point in PLAN.figures.speed().points
            for file in (point.scores, paths.meta(point.scores))
        ],
    output:
        figure=paths.FIGURE.replace("{figure}", "speed"),
        picture=report(
            "results/{scale}/figures/speed.png",
            caption="../report/speed.rst",
            category="Figures",
            labels={"figure": "speed"},
        ),
        numbers="results/{scale}/figures/speed.csv",
        meta="results/{scale}/figures/speed.meta.json",
    log:
        "results/{scale}/logs/figures/speed.log",
    localrule: True
    conda:
        "../../environment.yml"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        job=job_of("speed"),
    shell:
        "epcore speed {params.job:q} > {log:q} 2>&1"


rule per_episode:
    input:
        lambda w: [cell.scores for cell in PLAN.figures.per_episode().cells],
    output:
        figure=paths.FIGURE.replace("{figure}", "per-episode"),
        picture=report(
            "results/{scale}/figures/per-episode.png",
            caption="../report/per-episode.rst",
            category="Figures",
            labels={"figure": "single episodes"},
        ),
        numbers="results/{scale}/figures/per-episode.csv",
        meta="results/{scale}/figures/per-episode.meta.json",
    log:
        "results/{scale}/logs/figures/per-episode.log",
    localrule: True
    conda:
        "../../environment.yml"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        job=job_of("per-episode"),
    shell:
        "epcore per-episode {params.job:q} > {log:q} 2>&1"
