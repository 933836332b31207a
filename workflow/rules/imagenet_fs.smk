# ImageNet-FS: a classifier of base classes, features of all images, generators of the weights of
# novel classes, and their test on frozen exemplars. Included by scales that have it.
FS = PLAN.imagenet_fs
NETWORK, FEATURES = FS.scale.resources.network, FS.scale.resources.features
WEIGHTS = FS.scale.resources.weights


wildcard_constraints:
    network=one_of(FS.settings.networks),
    method=one_of(FS.methods),


rule imagenet_fs_exemplars:
    input:
        store=paths.STORE,
        queries=paths.STORE.replace("{dataset}", "{dataset}-queries"),
    output:
        exemplars=[*FS.exemplar_files("novel"), *FS.exemplar_files("val")],
        meta=paths.meta(FS.exemplar_files("novel")[0]),
    log:
        "results/{scale}/logs/imagenet-fs/{dataset}/exemplars.log",
    localrule: True
    resources:
        mem_mb=1000,
        runtime=60,
    params:
        config=slice_of(FS.exemplars),
        data=subpath(input.store, parent=True),
        queries=subpath(input.queries, parent=True),
        out=subpath(output.meta, parent=True),
    shell:
        "epcore imagenet-fs-exemplars --config {params.config:q} --data {params.data:q}"
        " --queries {params.queries:q} --out {params.out:q} > {log:q} 2>&1"


rule imagenet_fs_classifier:
    input:
        store=paths.STORE,
        queries=paths.STORE.replace("{dataset}", "{dataset}-queries"),
    output:
        checkpoint=paths.CLASSIFIER,
        meta=paths.meta(paths.CLASSIFIER),
        curve=paths.curve(paths.CLASSIFIER),
    log:
        "results/{scale}/logs/imagenet-fs/{dataset}/{network}/s{seed}/classifier.log",
    threads: NETWORK.threads
    resources:
        gpu=1,
        mem_mb=each_attempt(NETWORK.mem_mb),
        runtime=each_attempt(NETWORK.runtime),
    params:
        config=slice_of(FS.classifier),
        data=subpath(input.store, parent=True),
        queries=subpath(input.queries, parent=True),
    shell:
        f"epcore imagenet-fs-classifier {REQUIRE_GPU} --gpus {{resources.gpu}} --config {{params.config:q}}"
        " --data {params.data:q} --queries {params.queries:q} --out {output.checkpoint:q}"
        " > {log:q} 2>&1"


rule imagenet_fs_features:
    input:
        store=paths.STORE,
        queries=paths.STORE.replace("{dataset}", "{dataset}-queries"),
        checkpoint=paths.CLASSIFIER,
    output:
        images=paths.IMAGE_FEATURES,
        images_meta=paths.meta(paths.IMAGE_FEATURES),
        queries=paths.QUERY_FEATURES,
        queries_meta=paths.meta(paths.QUERY_FEATURES),
    log:
        "results/{scale}/logs/imagenet-fs/{dataset}/{network}/s{seed}/features.log",
    threads: FEATURES.threads
    resources:
        gpu=1,
        mem_mb=each_attempt(FEATURES.mem_mb),
        runtime=each_attempt(FEATURES.runtime),
    params:
        config=slice_of(FS.features),
        data=subpath(input.store, parent=True),
        queries=subpath(input.queries, parent=True),
        features=subpath(output.images, parent=True),
    shell:
        f"epcore imagenet-fs-features {ALLOW_CPU} --gpus {{resources.gpu}} --config {{params.config:q}}"
        " --data {params.data:q} --queries {params.queries:q} --checkpoint {input.checkpoint:q}"
        " --out {params.features:q}"
        " > {log:q} 2>&1"


rule imagenet_fs_generator:
    input:
        store=paths.STORE,
        queries=paths.STORE.replace("{dataset}", "{dataset}-queries"),
        checkpoint=paths.CLASSIFIER,
        features=paths.IMAGE_FEATURES,
        query_features=paths.QUERY_FEATURES,
        exemplars=lambda w: expand(FS.validation_exemplars(w.method), **w),
    output:
        generator=paths.GENERATOR,
        meta=paths.meta(paths.GENERATOR),
    log:
        "results/{scale}/logs/imagenet-fs/{dataset}/{network}/s{seed}/{method}.log",
    wildcard_constraints:
        method=one_of(FS.trained_methods),
    threads: WEIGHTS.threads
    resources:
        gpu=1,
        mem_mb=each_attempt(WEIGHTS.mem_mb),
        runtime=each_attempt(WEIGHTS.runtime),
    params:
        config=slice_of(FS.generator),
        data=subpath(input.store, parent=True),
        queries=subpath(input.queries, parent=True),
        features=subpath(input.features, parent=True),
    shell:
        f"epcore imagenet-fs-generator {ALLOW_CPU} --gpus {{resources.gpu}} --config {{params.config:q}}"
        " --data {params.data:q} --queries {params.queries:q} --features {params.features:q}"
        " --checkpoint {input.checkpoint:q} --exemplars {input.exemplars:q}"
        " --out {output.generator:q}"
        " > {log:q} 2>&1"


# On features a minute or two, so that a cluster is not asked.
rule imagenet_fs_evaluate:
    input:
        store=paths.STORE,
        queries=paths.STORE.replace("{dataset}", "{dataset}-queries"),
        checkpoint=paths.CLASSIFIER,
        features=paths.IMAGE_FEATURES,
        query_features=paths.QUERY_FEATURES,
        generator=lambda w: FS.generator_files(
            Run(w.dataset, w.network, w.method, int(w.seed), "")
        ),
        exemplars=FS.exemplar_files("novel"),
    output:
        scores=FS.trial_files(),
        meta=paths.meta(FS.trial_files()[0]),
    log:
        "results/{scale}/logs/imagenet-fs/{dataset}/{network}/s{seed}/evaluate-{method}.log",
    wildcard_constraints:
        method=one_of(set(FS.methods) - set(FS.long_methods)),
    localrule: True
    threads: WEIGHTS.threads
    resources:
        mem_mb=each_attempt(WEIGHTS.mem_mb),
        runtime=each_attempt(WEIGHTS.runtime),
    params:
        config=slice_of(FS.evaluate),
        data=subpath(input.store, parent=True),
        queries=subpath(input.queries, parent=True),
        features=subpath(input.features, parent=True),
        out=subpath(output.meta, parent=True),
        gpus="",
    shell:
        "epcore imagenet-fs-evaluate {params.gpus} --config {params.config:q} --data {params.data:q}"
        " --queries {params.queries:q} --features {params.features:q}"
        " --checkpoint {input.checkpoint:q} --generator {input.generator:q}"
        " --exemplars {input.exemplars:q} --out {params.out:q} > {log:q} 2>&1"


# Methods whose test takes hours of a processor at the paper's scale.
use rule imagenet_fs_evaluate as imagenet_fs_evaluate_long with:
    wildcard_constraints:
        method=one_of(FS.long_methods),
    localrule: False
    resources:
        gpu=1,
        mem_mb=each_attempt(WEIGHTS.mem_mb),
        runtime=each_attempt(WEIGHTS.runtime),
    params:
        gpus=lambda w, resources: f"{ALLOW_CPU} --gpus {resources.gpu}",
