# Copies at the top of the project, where a document finds them, of the scale that was run last.


rule publish:
    input:
        f"results/{SCALE}/{{file}}",
    output:
        "{file}",
    log:
        f"results/{SCALE}/logs/publish/{{file}}.log",
    wildcard_constraints:
        file=one_of(
            [
                *published_tables(TABLES),
                *published_figures(FIGURES),
                *published_co2(),
                "reports/reproduction.pdf",
            ]
        ),
    localrule: True
    resources:
        mem_mb=100,
        runtime=5,
    shell:
        "cp {input:q} {output:q} 2> {log:q}"


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
    localrule: True
    resources:
        mem_mb=100,
        runtime=5,
    params:
        base=f's|<head>|<head><base href="../results/{SCALE}/tables/">|',
    shell:
        "(cp {input.tex:q} {output.tex:q}"
        " && sed {params.base:q} {input.html:q} > {output.html:q}) 2> {log:q}"


rule ablation_pipeline:
    input:
        published_tables(sorted({"ablation", "propagator"} & set(PLAN.tables.covered))),
        published_figures(sorted({"ablation", "alpha"} & set(PLAN.covered_figures))),
    localrule: True
