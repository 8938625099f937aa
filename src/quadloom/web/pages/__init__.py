"""The pages, one module per group: functions `Ask → View`, whose data is also the page's JSON twin."""
