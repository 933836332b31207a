# Accuracy of every frozen test episode.
# Local: on cached features a thousand episodes take seconds, semi-supervised ones a minute or two.


rule evaluate:
    input:
        features=lambda w: PLAN.runs.features(run_of(w)),
        episodes=paths.EPISODES,
    output:
        scores=paths.SCORES,
        meta=paths.meta(paths.SCORES),
    log:
        "results/{scale}/logs/evaluate/{dataset}/{backbone}/{recipe}/s{seed}-{protocol}.log",
    wildcard_constraints:
        recipe=RECIPE,
    localrule: True
    threads: RESOURCES.evaluate.threads
    resources:
        mem_mb=each_attempt(RESOURCES.evaluate.mem_mb),
        runtime=each_attempt(RESOURCES.evaluate.runtime),
    params:
        config=slice_of(PLAN.runs.evaluate),
    shell:
        "epcore evaluate --config {params.config:q} --features {input.features:q}"
        " --episodes {input.episodes:q} --out {output.scores:q} > {log:q} 2>&1"


# The entries of classifiers.yaml that tables show with one checkpoint, in one job: most of them take
# less time than a process to begin.
rule evaluate_classifiers:
    input:
        features=lambda w: PLAN.runs.features(run_of(w)),
        base=lambda w: PLAN.runs.base(run_of(w)),
        episodes=paths.EPISODES,
        validation=lambda w: PLAN.tested.validation(run_of(w)),
    output:
        scores=paths.CLASSIFIED,
        meta=paths.meta(paths.CLASSIFIED),
    log:
        "results/{scale}/logs/evaluate-classifiers/{dataset}/{backbone}/{recipe}/s{seed}-{protocol}.log",
    wildcard_constraints:
        recipe=RECIPE,
    localrule: True
    threads: RESOURCES.evaluate.threads
    resources:
        mem_mb=each_attempt(RESOURCES.evaluate.mem_mb),
        runtime=each_attempt(RESOURCES.evaluate.runtime),
    params:
        config=slice_of(PLAN.tested.evaluate_classifiers),
    shell:
        "epcore evaluate-classifiers --config {params.config:q} --features {input.features:q}"
        " --base {input.base:q} --episodes {input.episodes:q} --validation {input.validation:q}"
        " --out {output.scores:q} > {log:q} 2>&1"
