# Phase two: episodes of the base classes, validated on episodes of the same shot.


rule finetune:
    input:
        store=paths.STORE,
        checkpoint=files_for("finetune", "checkpoint"),
        episodes=paths.EPISODES.replace("{protocol}", "val-5way-{shot}shot"),
    output:
        checkpoint=paths.FINETUNE,
        meta=paths.meta(paths.FINETUNE),
        curve=paths.curve(paths.FINETUNE),
    log:
        "results/{scale}/logs/finetune/{dataset}/{backbone}/{recipe}/s{seed}-{shot}shot.log",
    wildcard_constraints:
        recipe=recipes_that("train", "finetuning"),
    conda:
        "../../environment.yml"
    threads: THREADS
    resources:
        gpu=1,
        mem_mb=each_attempt(MEMORY),
        runtime=each_attempt(MINUTES),
    params:
        job=job_of("finetune"),
    shell:
        f"epcore finetune {REQUIRE_GPU} --gpus {{resources.gpu}} {{params.job:q}} > {{log:q}} 2>&1"
