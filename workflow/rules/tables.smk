# From per-episode scores to a CSV, LaTeX and a page, and the current scale's published copy.


rule table:
    input:
        cells=lambda w: PLAN.tables.stage(w.table).files,
        printed=files_for("table", "paper", "rerun"),
    output:
        table=paths.TABLE_CSV,
        meta=paths.meta(paths.TABLE_CSV),
        tex=paths.TABLE_TEX,
        html=report(
            paths.TABLE_HTML,
            caption="../report/table.rst",
            category="Tables",
            labels=lambda w: {
                "table": to_text(PLAN.registry.tables.table(w.table).title),
                "file": w.table,
            },
        ),
    log:
        "results/{scale}/logs/table/{table}.log",
    localrule: True
    conda:
        "../../environment.yml"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        job=job_of("table"),
    shell:
        "epcore table {params.job:q} > {log:q} 2>&1"


rule claims:
    input:
        PLAN.claims.files,
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
    conda:
        "../../environment.yml"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        job=job_of("claims"),
    shell:
        "epcore claims {params.job:q} > {log:q} 2>&1"
