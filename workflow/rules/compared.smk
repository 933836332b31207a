# Compared methods: trained on episodes from random weights, tested on the frozen ones.


rule meta_train:
    input:
        store=paths.STORE,
        episodes=files_for("meta-train", "episodes"),
    output:
        checkpoint=paths.META_TRAINED,
        meta=paths.meta(paths.META_TRAINED),
        curve=paths.curve(paths.META_TRAINED),
    log:
        "results/{scale}/logs/meta-train/{dataset}/{backbone}/{recipe}/s{seed}-{shot}shot.log",
    wildcard_constraints:
        recipe=one_of(PLAN.registry.recipes.compared),
    conda:
        "../../environment.yml"
    threads: THREADS
    resources:
        gpu=1,
        mem_mb=each_attempt(MEMORY),
        runtime=each_attempt(MINUTES),
    params:
        job=job_of("meta-train"),
    shell:
        f"epcore meta-train {REQUIRE_GPU} --gpus {{resources.gpu}} {{params.job:q}} > {{log:q}} 2>&1"


rule meta_test:
    input:
        store=paths.STORE,
        checkpoint=files_for("meta-test", "weights"),
        episodes=paths.EPISODES,
    output:
        scores=paths.SCORES,
        meta=paths.meta(paths.SCORES),
    log:
        "results/{scale}/logs/meta-test/{dataset}/{backbone}/{recipe}/s{seed}-{protocol}.log",
    wildcard_constraints:
        recipe=one_of(PLAN.registry.recipes.compared),
    conda:
        "../../environment.yml"
    threads: RESOURCES.embed.threads
    resources:
        gpu=1,
        mem_mb=each_attempt(MEMORY),
        runtime=each_attempt(MINUTES),
    params:
        job=job_of("meta-test"),
    shell:
        f"epcore meta-test {ALLOW_CPU} --gpus {{resources.gpu}} {{params.job:q}} > {{log:q}} 2>&1"


rule compared:
    input:
        published_tables(
            sorted({"compared", "compared-gaps"} & set(PLAN.tables.covered))
        ),
    localrule: True
