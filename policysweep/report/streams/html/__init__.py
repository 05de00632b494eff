"""The report of a stream run as a page: `report.html`, and a folder of what it loads on demand.

    report-data/d0.js          the tasks and policy gaps of a domain
    report-data/s000.js        what one stream learnt: its lessons, and how each entry evolved
    report-data/s000-0012.js   one record: conversation, grade and lesson

The page holds the figures, and of each task one letter for its outcome and one for its lesson.
"""
