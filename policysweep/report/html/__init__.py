"""The report as a page: `report.html`, and a folder of transcripts that it loads on demand.

    summary, scenarios, records --write--> report.html + report-data/NNNN.js
    summary --sections--> markup --page--> one file with styles, scripts and figures inside
    records, verdicts --index--> what filters need of each unit, in the page
                      --chunks--> all transcripts of one scenario, one file each

The tables and sentences are made here and can be read without scripts, on paper and by a screen reader. The
scripts in `app/` draw the charts beside them and run the transcript viewer. `docs/reading-the-report.md`
describes both for readers, docs/adr/0003 the choice of the chart library.

Every text in a run may come from a model or a data set: it is escaped by `markup` and `embed`, and the page's
Content-Security-Policy, in `shell`, runs no script but its own.
"""
