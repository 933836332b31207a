# From per-episode scores to a CSV, LaTeX and a page, and the current scale's published copy.


rule table:
    input:
        printed=lambda w: PLAN.tables.printed_files(w.table),
        cells=lambda w: PLAN.tables.stage(w.table).files,
    output:
        table=paths.TABLE_CSV,
        tests=paths.TABLE_TESTS,
        meta=paths.meta(paths.TABLE_CSV),
        tex=paths.TABLE_TEX,
        html=report(
            paths.TABLE_HTML,
            caption="../report/table.rst",
            category="Tables",
            labels=lambda w: {
                "table": to_text(PLAN.tables.table(w.table).title),
                "file": w.table,
            },
        ),
    log:
        "results/{scale}/logs/table/{table}.log",
    localrule: True
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        stage="table",
        config=slice_of(PLAN.tables.stage),
    script:
        "../scripts/report.py"


rule claims:
    input:
        **PLAN.claims.inputs,
    output:
        table=paths.CLAIMS,
        meta=paths.meta(paths.CLAIMS),
        tex=paths.CLAIMS.replace(".csv", ".tex"),
        html=report(
            paths.CLAIMS.replace(".csv", ".html"),
            caption="../report/claims.rst",
            category="Claims",
            labels={"table": "claims and verdicts"},
        ),
    log:
        "results/{scale}/logs/claims.log",
    localrule: True
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        stage="claims",
        config=slice_of(PLAN.claims.stage),
    script:
        "../scripts/report.py"
