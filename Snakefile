from snakemake.utils import min_version

min_version("9.27")


include: "rules/common.smk"


rule all:
    input:
        # Named by the study: the report of another study before does not count as this one's.
        FILES.tables(),
        "<results>/answers.md",
        "<results>/report.html",
        "<results>/config.yaml",


# What these measure, a replay has from a stored study.
if not REPLAY:

    include: "rules/measure.smk"
    include: "rules/train.smk"
    include: "rules/quantize.smk"


include: "rules/report.smk"
