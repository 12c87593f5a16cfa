"""A front end that shows conversations in a browser. Only somebody who has the page's address gets in."""
