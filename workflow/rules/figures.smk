# Figures, each with the numbers that it draws. PLAN.figure_jobs says what a figure is made from.
FIGURE = paths.FIGURE.removesuffix(".pdf")


rule figure:
    input:
        unpack(lambda w: PLAN.figure_jobs[w.figure].inputs),
    output:
        figure=f"{FIGURE}.pdf",
        picture=report(
            f"{FIGURE}.png",
            caption="../report/figure.rst",
            category="Figures",
            labels=lambda w: {
                "figure": PLAN.figure_jobs[w.figure].title,
                "file": w.figure,
            },
        ),
        numbers=f"{FIGURE}.csv",
        meta=paths.meta(paths.FIGURE),
    log:
        "results/{scale}/logs/figures/{figure}.log",
    wildcard_constraints:
        figure=one_of(PLAN.covered_figures),
    localrule: True
    resources:
        mem_mb=2000,
        runtime=30,
    params:
        stage=lambda w: PLAN.figure_jobs[w.figure].stage,
        config=lambda w: config_text(PLAN.figure_jobs[w.figure].config),
    script:
        "../scripts/report.py"
