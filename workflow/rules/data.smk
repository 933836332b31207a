# From the files of its sources to a data set's packed store, and a picture of it.


# Downloads need a network, which compute nodes of clusters often lack: this rule stays at home.
# `params` holds the published checksums: when they change, the files are fetched anew. The data root is
# none of them: what was built from files stays when others go to another disk.
rule fetch:
    output:
        paths.RECEIPT,
    log:
        "results/{scale}/logs/fetch/{source}.log",
    localrule: True
    resources:
        mem_mb=500,
        runtime=1440,
    params:
        published=lambda wildcards: fingerprint(
            config_text(PLAN.data.fetch(wildcards.source))
        ),
        settings=CONFIG,
    shell:
        'epcore fetch {wildcards.source} --settings {params.settings:q} --root "$EPCORE_DATA_ROOT" '
        "--receipt {output:q} > {log:q} 2>&1"


rule data:
    input:
        sources=lambda w: PLAN.data.receipts(w.dataset),
        own=lambda w: PLAN.data.own_file(w.dataset),
    output:
        images=paths.IMAGES,
        labels=paths.LABELS,
        checksums=paths.CHECKSUMS,
        store=paths.STORE,
    log:
        "results/{scale}/logs/data/{dataset}.log",
    threads: RESOURCES.data.threads
    resources:
        mem_mb=each_attempt(RESOURCES.data.mem_mb),
        runtime=each_attempt(RESOURCES.data.runtime),
    params:
        config=slice_of(PLAN.data.build),
        out=subpath(output.store, parent=True),
    shell:
        "epcore data --config {params.config:q} --sources {input.sources:q} --out {params.out:q}"
        " > {log:q} 2>&1"


rule contact_sheet:
    input:
        store=paths.STORE,
    output:
        report(
            paths.CONTACT_SHEET,
            caption="../report/data.rst",
            category="Data",
            labels=lambda w: {
                "data set": PLAN.registry.datasets[w.dataset].title,
                "file": w.dataset,
            },
        ),
    log:
        "results/{scale}/logs/contact_sheet/{dataset}.log",
    localrule: True
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        data=subpath(input.store, parent=True),
    shell:
        "epcore contact-sheet --data {params.data:q} --out {output:q} > {log:q} 2>&1"


rule data_pictures:
    input:
        contact_sheets(PLAN.registry.shown_datasets()),
    localrule: True
