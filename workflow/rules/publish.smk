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
                *PUBLISHED_CO2,
                "reports/reproduction.pdf",
            ]
        ),
    localrule: True
    resources:
        mem_mb=100,
        runtime=5,
    shell:
        "cp {input:q} {output:q} 2> {log:q}"


rule publish_figure:
    input:
        multiext(f"results/{SCALE}/figures/{{name}}", ".pdf", ".png"),
    output:
        pdf="figures/{name}.pdf",
        png="figures/{name}.png",
    log:
        f"results/{SCALE}/logs/publish/figures/{{name}}.log",
    wildcard_constraints:
        name=one_of(FIGURES),
    localrule: True
    resources:
        mem_mb=100,
        runtime=5,
    shell:
        "cp {input:q} $(dirname {output.pdf:q}) 2> {log:q}"


rule ablation_pipeline:
    input:
        published_tables(sorted({"ablation", "propagator"} & set(PLAN.tables.covered))),
        published_figures(sorted({"ablation", "alpha"} & set(PLAN.covered_figures))),
    localrule: True
