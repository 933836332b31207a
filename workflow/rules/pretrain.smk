# Phase one: classes and rotations of the base images, validated on 5-shot episodes.


rule pretrain:
    input:
        store=paths.STORE,
        episodes=paths.EPISODES.replace("{protocol}", "val-5way-5shot"),
    output:
        checkpoint=paths.PRETRAIN,
        meta=paths.meta(paths.PRETRAIN),
        curve=paths.curve(paths.PRETRAIN),
    log:
        "results/{scale}/logs/pretrain/{dataset}/{backbone}/{recipe}/s{seed}.log",
    wildcard_constraints:
        recipe=recipes_that("train", "pretraining"),
    threads: THREADS
    resources:
        gpu=RESOURCES.gpus,
        mem_mb=each_attempt(MEMORY),
        runtime=each_attempt(MINUTES),
    params:
        config=slice_of(PLAN.runs.pretrain),
        data=subpath(input.store, parent=True),
    shell:
        f"epcore pretrain {REQUIRE_GPU} --gpus {{resources.gpu}} --config {{params.config:q}}"
        " --data {params.data:q} --episodes {input.episodes:q} --out {output.checkpoint:q}"
        " > {log:q} 2>&1"
