# The checkpoint of a recipe with `candidates`: a copy of the best of theirs on validation.


rule select_pretrained:
    input:
        checkpoints=candidates("pretrain"),
    output:
        checkpoint=paths.PRETRAIN,
        meta=paths.meta(paths.PRETRAIN),
        curve=paths.curve(paths.PRETRAIN),
    log:
        "results/{scale}/logs/select/{dataset}/{backbone}/{recipe}/s{seed}.log",
    wildcard_constraints:
        recipe=recipes_that("choose", "pretraining"),
    localrule: True
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        config=slice_of(PLAN.runs.select, checkpoint="pretrain"),
    shell:
        "epcore select --config {params.config:q} --checkpoints {input.checkpoints:q}"
        " --out {output.checkpoint:q} > {log:q} 2>&1"


use rule select_pretrained as select_finetuned with:
    input:
        checkpoints=candidates("finetune-{shot}shot"),
    output:
        checkpoint=paths.FINETUNE,
        meta=paths.meta(paths.FINETUNE),
        curve=paths.curve(paths.FINETUNE),
    log:
        "results/{scale}/logs/select/{dataset}/{backbone}/{recipe}/s{seed}-{shot}shot.log",
    wildcard_constraints:
        recipe=recipes_that("choose", "finetuning"),
    params:
        config=slice_of(PLAN.runs.select, checkpoint="finetune-{shot}shot"),
