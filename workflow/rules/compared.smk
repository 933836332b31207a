# Compared methods: trained on episodes of base classes, or pretrained; tested on the frozen ones.


rule meta_train:
    input:
        store=paths.STORE,
        episodes=lambda w: paths.EPISODES.format(
            **w, protocol=PLAN.compared.validation(w.recipe, int(w.shot))
        ),
        pretrained=lambda w: PLAN.runs.start_files(
            w.dataset, w.backbone, w.recipe, int(w.seed)
        ),
    output:
        checkpoint=paths.META_TRAINED,
        meta=paths.meta(paths.META_TRAINED),
        curve=paths.curve(paths.META_TRAINED),
    log:
        "results/{scale}/logs/meta-train/{dataset}/{backbone}/{recipe}/s{seed}-{shot}shot.log",
    wildcard_constraints:
        recipe=one_of(PLAN.compared.trained),
    threads: THREADS
    resources:
        gpu=1,
        mem_mb=each_attempt(MEMORY),
        runtime=each_attempt(MINUTES),
    params:
        config=slice_of(PLAN.compared.meta_train),
        data=subpath(input.store, parent=True),
    shell:
        f"epcore meta-train {REQUIRE_GPU} --gpus {{resources.gpu}} --config {{params.config:q}}"
        " --data {params.data:q} --episodes {input.episodes:q} --pretrained {input.pretrained:q}"
        " --out {output.checkpoint:q}"
        " > {log:q} 2>&1"


rule meta_test:
    input:
        store=paths.STORE,
        checkpoint=lambda w: PLAN.runs.trained(run_of(w)),
        episodes=paths.EPISODES,
    output:
        scores=paths.SCORES,
        meta=paths.meta(paths.SCORES),
    log:
        "results/{scale}/logs/meta-test/{dataset}/{backbone}/{recipe}/s{seed}-{protocol}.log",
    wildcard_constraints:
        recipe=one_of(PLAN.registry.recipes.compared),
    threads: RESOURCES.embed.threads
    resources:
        gpu=1,
        mem_mb=each_attempt(MEMORY),
        runtime=each_attempt(MINUTES),
    params:
        config=slice_of(PLAN.compared.meta_test),
        data=subpath(input.store, parent=True),
    shell:
        f"epcore meta-test {REQUIRE_GPU} --gpus {{resources.gpu}} --config {{params.config:q}}"
        " --data {params.data:q} --weights {input.checkpoint:q} --episodes {input.episodes:q}"
        " --out {output.scores:q}"
        " > {log:q} 2>&1"


rule compared:
    input:
        published_tables(
            sorted({"compared", "compared-gaps"} & set(PLAN.tables.covered))
        ),
    localrule: True
