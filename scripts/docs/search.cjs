// Searches a site as its pages do, with the scripts that index.html names. Arguments: the folder, and what to search for. Prints a list of
// addresses for each, the best first, as JSON.
'use strict';

const fs = require('fs');
const path = require('path');
const vm = require('vm');

const [folder, ...queries] = process.argv.slice(2);
const read = name => fs.readFileSync(path.join(folder, name), 'utf8');
const window = { search: {} };
window.window = window;
vm.createContext(window);
const scripts = [...read('index.html').matchAll(/<script src="([^"]+)"/g)].map(found => found[1]);
const index = fs.readdirSync(folder).find(name => /^searchindex.*\.js$/.test(name));
for (const script of [...scripts.filter(name => /elasticlunr|chinese/.test(name)), index]) {
    vm.runInContext(read(script), window);
}
const { search } = window;
const loaded = window.elasticlunr.Index.load(search.index);
const found = query => loaded.search(query, search.search_options).slice(0, search.results_options.limit_results).map(hit => search.doc_urls[hit.ref]);
process.stdout.write(JSON.stringify(queries.map(found)));
