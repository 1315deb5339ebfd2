"""Reading results that Harbor or the scripts of EvoCode-Bench wrote."""
