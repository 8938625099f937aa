"""The pages, one module per group: functions `WebRequest → ViewResponse`, whose data is also the page's JSON twin."""
