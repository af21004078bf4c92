// Prints the rows of an Arrow file as newline-delimited JSON, with integers as decimal text: node read.mjs FILE
// Used by export_corpus_test.py; needs the package apache-arrow.
import { readFileSync, writeSync } from "node:fs";
import { tableFromIPC } from "apache-arrow";

const table = tableFromIPC(readFileSync(process.argv[2]));
const names = table.schema.fields.map((field) => field.name);
const columns = names.map((name) => table.getChild(name));
let text = JSON.stringify({ rows: table.numRows, types: table.schema.fields.map((field) => String(field.type)) }) + "\n";
for (let row = 0; row < table.numRows; row++) {
	const cells = columns.map((column, i) => {
		const value = column.get(row);
		return JSON.stringify(names[i]) + ":" + (typeof value === "bigint" ? value.toString() : JSON.stringify(value));
	});
	text += "{" + cells.join(",") + "}\n";
	if (text.length > 1 << 20) {
		writeSync(1, text);
		text = "";
	}
}
writeSync(1, text);
