"""From wherever features lie to ranking data: tables read and checked, features prepared."""
