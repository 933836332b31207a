# Plots of the tables' numbers, training curves, and the report's page on the environment.


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
