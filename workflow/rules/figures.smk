# Figures, each with the numbers that it draws, and the current scale's published copies.


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


rule publish_figure:
    input:
        made=f"results/{SCALE}/figures/{{figure}}.{{ending}}",
    output:
        "figures/{figure}.{ending}",
    log:
        f"results/{SCALE}/logs/publish_figure/{{figure}}.{{ending}}.log",
    wildcard_constraints:
        figure=one_of(PLAN.covered_figures),
        ending="pdf|png",
    localrule: True
    conda:
        "../../environment.yml"
    threads: 1
    resources:
        mem_mb=100,
        runtime=5,
    params:
        scale=SCALE,
    shell:
        "cp {input.made:q} {output:q} 2> {log:q}"
