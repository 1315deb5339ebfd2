-- The register's own role, and the one of whoever looks at its work; only the first is known to the machine at the desk.
CREATE ROLE register LOGIN CREATEDB PASSWORD 'register';
CREATE ROLE audit LOGIN CREATEDB PASSWORD 'h2-Vb71-quire-fathom-9Kd';
GRANT register TO audit;
CREATE DATABASE register OWNER register ENCODING 'UTF8' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0;
