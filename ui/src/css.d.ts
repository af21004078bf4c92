// css.d.ts: esbuild takes style sheets that are imported into app.css.
declare module "*.css";
