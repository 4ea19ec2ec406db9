-- Rows of a little over 2 kB had their short columns moved out of line, and sorting by key then read each from there.
ALTER TABLE search_rows SET (toast_tuple_target = 4096);
