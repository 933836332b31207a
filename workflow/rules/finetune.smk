# Phase two: episodes of the base classes, validated on episodes of the same shot.


rule finetune:
    input:
        store=paths.STORE,
        checkpoint=lambda w: paths.PRETRAIN.format(
            **{**w, "recipe": PLAN.runs.owner("pretraining", w.backbone, w.recipe)}
        ),
        episodes=paths.EPISODES.replace("{protocol}", "val-5way-{shot}shot"),
    output:
        checkpoint=paths.FINETUNE,
        meta=paths.meta(paths.FINETUNE),
        curve=paths.curve(paths.FINETUNE),
    log:
        "results/{scale}/logs/finetune/{dataset}/{backbone}/{recipe}/s{seed}-{shot}shot.log",
    wildcard_constraints:
        recipe=recipes_that("train", "finetuning"),
    threads: THREADS
    resources:
        gpu=1,
        mem_mb=each_attempt(MEMORY),
        runtime=each_attempt(MINUTES),
    params:
        config=slice_of(PLAN.runs.finetune),
        data=subpath(input.store, parent=True),
    shell:
        f"epcore finetune {REQUIRE_GPU} --gpus {{resources.gpu}} --config {{params.config:q}}"
        " --data {params.data:q} --episodes {input.episodes:q} --checkpoint {input.checkpoint:q}"
        " --out {output.checkpoint:q}"
        " > {log:q} 2>&1"
