# Features of the images that test episodes touch, once per checkpoint.


rule embed:
    input:
        store=paths.STORE,
        checkpoint=paths.CHECKPOINT,
        episodes=episodes_of_features,
    output:
        features=paths.FEATURES,
        meta=paths.meta(paths.FEATURES),
    log:
        "results/{scale}/logs/embed/{dataset}/{backbone}/{recipe}/s{seed}-{checkpoint}.log",
    benchmark:
        "results/{scale}/benchmarks/embed/{dataset}/{backbone}/{recipe}/s{seed}-{checkpoint}.tsv"
    conda:
        "../../environment.yml"
    threads: THREADS
    resources:
        mem_mb=MEMORY,
        runtime=60,
    params:
        config=stage_config("embed", "backbone", "recipe"),
        data=lambda wildcards, input: Path(input.store).parent,
    shell:
        "epcore embed --config {params.config:q} --data {params.data:q} "
        "--checkpoint {input.checkpoint:q} --episodes {input.episodes:q} "
        "--out {output.features:q} > {log:q} 2>&1"
