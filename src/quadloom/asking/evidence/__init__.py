"""Where a value comes from, so that others can cite it and check it.

In: a warehouse and a thing or page. Out: citations (`cite`) and folders of evidence (`bundle`) that stock tools verify.
"""
