// css.d.ts: lets TypeScript accept imported style sheets, which esbuild bundles into app.css.
declare module "*.css";
