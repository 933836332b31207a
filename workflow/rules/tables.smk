# From per-episode scores to a CSV, LaTeX and a page, and the current scale's published copy.


rule table:
    input:
        cells=lambda w: PLAN.tables.stage(w.table).files,
        printed=lambda w: PLAN.tables.printed_files(w.table),
    output:
        table=paths.TABLE_CSV,
        meta=paths.meta(paths.TABLE_CSV),
        tex=paths.TABLE_TEX,
        html=report(
            paths.TABLE_HTML,
            caption="../report/table.rst",
            category="Tables",
            labels={"table": "{table}"},
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


rule publish_table:
    input:
        made=paths.TABLE_TEX.replace("{scale}", SCALE),
    output:
        "tables/{table}.tex",
    log:
        f"results/{SCALE}/logs/publish_table/{{table}}.log",
    benchmark:
        f"results/{SCALE}/benchmarks/publish_table/{{table}}.tsv"
    wildcard_constraints:
        table=one_of(PLAN.tables.covered),
    localrule: True
    conda:
        "../../environment.yml"
    threads: 1
    resources:
        mem_mb=100,
        runtime=5,
    params:
        scale=SCALE,
    shell:
        "cp {input.made:q} {output:q} 2> {log:q}"


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
    benchmark:
        "results/{scale}/benchmarks/claims.tsv"
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


# The page's links are relative to the folder of the scale's tables.
rule publish_claims:
    input:
        tex=paths.CLAIMS.replace(".csv", ".tex").format(scale=SCALE),
        html=paths.CLAIMS.replace(".csv", ".html").format(scale=SCALE),
        tables=expand(paths.TABLE_HTML, scale=SCALE, table=PLAN.main_tables),
    output:
        tex="tables/claims.tex",
        html="reports/claims.html",
    log:
        f"results/{SCALE}/logs/publish_claims.log",
    benchmark:
        f"results/{SCALE}/benchmarks/publish_claims.tsv"
    localrule: True
    conda:
        "../../environment.yml"
    threads: 1
    resources:
        mem_mb=100,
        runtime=5,
    params:
        base=f's|<head>|<head><base href="../results/{SCALE}/tables/">|',
    shell:
        "(cp {input.tex:q} {output.tex:q}"
        " && sed {params.base:q} {input.html:q} > {output.html:q}) 2> {log:q}"
