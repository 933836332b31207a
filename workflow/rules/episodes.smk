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
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        config=slice_of(PLAN.data.episodes),
        data=subpath(input.store, parent=True),
    shell:
        "epcore episodes --config {params.config:q} --data {params.data:q}"
        " --out {output.episodes:q} > {log:q} 2>&1"
