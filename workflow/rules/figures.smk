# Figures, each with the numbers that it draws, and the current scale's published copies.


rule ablation:
    input:
        scores=lambda w: [cell.scores for cell in PLAN.cells("ablation")],
        paper=CONFIG / "paper" / "abl.csv",
    output:
        figure=paths.FIGURE.replace("{figure}", "ablation"),
        picture="results/{scale}/figures/ablation.png",
        numbers="results/{scale}/figures/ablation.csv",
        meta="results/{scale}/figures/ablation.meta.json",
    log:
        "results/{scale}/logs/figures/ablation.log",
    benchmark:
        "results/{scale}/benchmarks/figures/ablation.tsv"
    localrule: True
    conda:
        "../../environment.yml"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        config=lambda wildcards: PLAN.ablation("ablation"),
    shell:
        "epcore ablation --config {params.config:q} --paper {input.paper:q} "
        "--out {output.figure:q} > {log:q} 2>&1"


rule alpha:
    input:
        features=lambda w: [PLAN.features_of(*run) for run in PLAN.alpha_runs()],
        episodes=alpha_episodes,
    output:
        figure=paths.FIGURE.replace("{figure}", "alpha"),
        picture="results/{scale}/figures/alpha.png",
        numbers="results/{scale}/figures/alpha.csv",
        meta="results/{scale}/figures/alpha.meta.json",
    log:
        "results/{scale}/logs/figures/alpha.log",
    benchmark:
        "results/{scale}/benchmarks/figures/alpha.tsv"
    conda:
        "../../environment.yml"
    threads: THREADS
    resources:
        mem_mb=2000,
        runtime=30,
    params:
        config=lambda wildcards: PLAN.alpha(),
    shell:
        "epcore alpha --config {params.config:q} --episodes {input.episodes:q} "
        "--out {output.figure:q} > {log:q} 2>&1"


rule publish_figure:
    input:
        f"results/{SCALE}/figures/{{figure}}.{{ending}}",
    output:
        "figures/{figure}.{ending}",
    log:
        f"results/{SCALE}/logs/publish_figure/{{figure}}.{{ending}}.log",
    benchmark:
        f"results/{SCALE}/benchmarks/publish_figure/{{figure}}.{{ending}}.tsv"
    wildcard_constraints:
        figure="|".join(PLAN.covered_figures) or "(?!)",  # else nothing
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
        "cp {input:q} {output:q} 2> {log:q}"
