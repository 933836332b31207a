# From a data set's description to its packed store, and a picture of it.


rule data:
    input:
        split=lambda w: PLAN.data_files(w.dataset),
    output:
        images=paths.IMAGES,
        labels=paths.LABELS,
        store=paths.STORE,
    log:
        "results/{scale}/logs/data/{dataset}.log",
    benchmark:
        "results/{scale}/benchmarks/data/{dataset}.tsv"
    conda:
        "../../environment.yml"
    threads: 1
    resources:
        mem_mb=2000,
        runtime=240,
    params:
        config=stage_config("data", "dataset"),
        out=lambda wildcards, output: Path(output.store).parent,
    shell:
        "epcore data --config {params.config:q} --out {params.out:q} > {log:q} 2>&1"


rule contact_sheet:
    input:
        store=paths.STORE,
    output:
        paths.CONTACT_SHEET,
    log:
        "results/{scale}/logs/contact_sheet/{dataset}.log",
    benchmark:
        "results/{scale}/benchmarks/contact_sheet/{dataset}.tsv"
    conda:
        "../../environment.yml"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        data=lambda wildcards, input: Path(input.store).parent,
    shell:
        "epcore contact-sheet --data {params.data:q} --out {output:q} > {log:q} 2>&1"


rule data_pictures:
    input:
        [
            paths.CONTACT_SHEET.format(scale=SCALE, dataset=dataset)
            for dataset in PLAN.shown_datasets()
        ],
    localrule: True
