// For the site: mdBook's search cuts texts at spaces and keeps Latin letters only, so that no Chinese word is found. Here every two Chinese
// characters that stand side by side are a word, in the pages and in what is searched for.
'use strict';

(() => {
    const words = text => (text.match(/\p{Script=Han}+/gu) ?? []).flatMap(run =>
        run.length === 1 ? [run] : Array.from({ length: run.length - 1 }, (_, at) => run.slice(at, at + 2)));

    const learn = index => {
        for (const [ref, page] of Object.entries(index.documentStore.docs)) {
            for (const field of index.getFields()) {
                const times = new Map();
                words(page[field] ?? '').forEach(word => times.set(word, (times.get(word) ?? 0) + 1));
                times.forEach((count, word) => index.index[field].addToken(word, { ref, tf: Math.sqrt(count) }));
            }
        }
        const others = index.pipeline.run.bind(index.pipeline);
        index.pipeline.run = tokens => [...tokens.flatMap(words), ...others(tokens)];
    };

    // At the first search: the index comes some time after this script.
    const learned = new WeakSet();
    const { search } = elasticlunr.Index.prototype;
    elasticlunr.Index.prototype.search = function (query, options) {
        if (!learned.has(this)) {
            learned.add(this);
            learn(this);
        }
        return search.call(this, query, options);
    };
})();
