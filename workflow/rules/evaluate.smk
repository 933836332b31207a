# Accuracy of every frozen test episode: a rule for each suite of protocols that one job scores, of
# recipes and of recipes with a classifier of classifiers.yaml.
# Local: on cached features a thousand episodes take seconds, semi-supervised ones a minute or two.
for suite, pattern in [
    (suite, pattern)
    for classifiers, pattern in ((False, RECIPE), (True, CLASSIFIED))
    for suite in PLAN.tested.suites(classifiers)
]:

    rule:
        name:
            f"evaluate_{suite[0].replace('-', '_')}"
            + "_classifiers" * (pattern == CLASSIFIED)
        input:
            features=files_for("evaluate", "features", protocol=suite),
            episodes=expand(paths.EPISODES, protocol=suite, allow_missing=True),
            others=files_for("evaluate", "base", "validation", protocol=suite),
        output:
            scores=expand(paths.SCORES, protocol=suite, allow_missing=True),
            metas=expand(paths.meta(paths.SCORES), protocol=suite, allow_missing=True),
        log:
            f"results/{{scale}}/logs/evaluate/{{dataset}}/{{backbone}}/{{recipe}}/s{{seed}}-{suite[0]}.log",
        wildcard_constraints:
            recipe=pattern,
        localrule: True
        conda:
            "../../environment.yml"
        threads: RESOURCES.evaluate.threads
        resources:
            mem_mb=each_attempt(RESOURCES.evaluate.mem_mb),
            runtime=each_attempt(RESOURCES.evaluate.runtime),
        params:
            job=job_of("evaluate", protocol=suite),
        shell:
            "epcore evaluate {params.job:q} > {log:q} 2>&1"
