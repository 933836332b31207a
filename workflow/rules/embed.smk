# Once per checkpoint: features of the images of validation and test classes, whatever episodes are drawn
# of them; for classifiers that take them, the mean feature of the base images and the weights of the
# base classes.


rule embed:
    input:
        store=paths.STORE,
        checkpoint=paths.CHECKPOINT,
    output:
        features=paths.FEATURES,
        meta=paths.meta(paths.FEATURES),
    log:
        "results/{scale}/logs/embed/{dataset}/{backbone}/{recipe}/s{seed}-{checkpoint}.log",
    threads: RESOURCES.embed.threads
    resources:
        gpu=1,
        mem_mb=each_attempt(RESOURCES.embed.mem_mb),
        runtime=each_attempt(RESOURCES.embed.runtime),
    params:
        config=slice_of(PLAN.runs.embed),
        data=subpath(input.store, parent=True),
    shell:
        f"epcore embed {ALLOW_CPU} --gpus {{resources.gpu}} --config {{params.config:q}}"
        " --data {params.data:q} --weights {input.checkpoint:q} --out {output.features:q}"
        " > {log:q} 2>&1"


rule base_classes:
    input:
        store=paths.STORE,
        checkpoint=paths.CHECKPOINT,
    output:
        base=paths.BASE_CLASSES,
        meta=paths.meta(paths.BASE_CLASSES),
    log:
        "results/{scale}/logs/base-classes/{dataset}/{backbone}/{recipe}/s{seed}-{checkpoint}.log",
    threads: RESOURCES.embed.threads
    resources:
        gpu=1,
        mem_mb=each_attempt(RESOURCES.embed.mem_mb),
        runtime=each_attempt(RESOURCES.embed.runtime),
    params:
        config=slice_of(PLAN.runs.base_classes),
        data=subpath(input.store, parent=True),
    shell:
        f"epcore base-classes {ALLOW_CPU} --gpus {{resources.gpu}} --config {{params.config:q}}"
        " --data {params.data:q} --weights {input.checkpoint:q} --out {output.base:q}"
        " > {log:q} 2>&1"
