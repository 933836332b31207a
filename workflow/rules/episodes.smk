# Frozen episodes: sampled once per data set and protocol, the same for every method.


rule episodes:
    input:
        store=paths.STORE,
    output:
        episodes=paths.EPISODES,
        meta=paths.meta(paths.EPISODES),
    log:
        "results/{scale}/logs/episodes/{dataset}/{protocol}.log",
    localrule: True
    conda:
        "../../environment.yml"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        job=job_of("episodes"),
    shell:
        "epcore episodes {params.job:q} > {log:q} 2>&1"
