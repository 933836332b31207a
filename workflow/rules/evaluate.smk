# Accuracy of every frozen test episode.


rule evaluate:
    input:
        features=features_for_protocol,
        episodes=paths.EPISODES,
    output:
        scores=paths.SCORES,
        meta=paths.meta(paths.SCORES),
    log:
        "results/{scale}/logs/evaluate/{dataset}/{backbone}/{recipe}/s{seed}-{protocol}.log",
    benchmark:
        "results/{scale}/benchmarks/evaluate/{dataset}/{backbone}/{recipe}/s{seed}-{protocol}.tsv"
    conda:
        "../../environment.yml"
    threads: THREADS
    resources:
        mem_mb=2000,
        runtime=30,
    params:
        config=stage_config("evaluate", "backbone", "recipe"),
    shell:
        "epcore evaluate --config {params.config:q} --features {input.features:q} "
        "--episodes {input.episodes:q} --out {output.scores:q} > {log:q} 2>&1"
