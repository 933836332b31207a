# From per-episode scores to a CSV, from the CSV to LaTeX, and the current scale's published copy.


rule aggregate:
    input:
        scores=lambda w: [cell.scores for cell in PLAN.tables.cells(w.table)],
        baselines=lambda w: [
            cell.baseline for cell in PLAN.tables.cells(w.table) if cell.baseline
        ],
        metas=lambda w: [
            file
            for cell in PLAN.tables.cells(w.table)
            for file in (cell.checkpoint_meta, cell.method_meta)
            if file
        ],
        curves=lambda w: [
            file
            for cell in PLAN.tables.cells(w.table)
            for training in cell.trainings
            for file in training.files
        ],
        paper=lambda w: PLAN.printed_in(w.table)[:1],
        rerun=lambda w: PLAN.printed_in(w.table)[1:],
    output:
        table=paths.TABLE_CSV,
        meta=paths.meta(paths.TABLE_CSV),
    log:
        "results/{scale}/logs/aggregate/{table}.log",
    localrule: True
    conda:
        "../../environment.yml"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        job=job_of("aggregate"),
    shell:
        "epcore aggregate {params.job:q} > {log:q} 2>&1"


rule latex:
    input:
        paths.TABLE_CSV,
    output:
        tex=paths.TABLE_TEX,
        html=report(
            paths.TABLE_HTML,
            caption="../report/table.rst",
            category="Tables",
            labels={"table": "{table}"},
        ),
    log:
        "results/{scale}/logs/latex/{table}.log",
    localrule: True
    conda:
        "../../environment.yml"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        job=job_of("latex"),
    shell:
        "epcore latex {params.job:q} > {log:q} 2>&1"


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
