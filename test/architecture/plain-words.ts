import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { documentsOf, type Rule } from './rules.ts';

/** A comment starts with a verb or a noun: these openings hide its subject. */
const opening = /^\/[/*]\*?\s*\*?\s*(?:What|Whoever|Of)\b/;

/** Phrases with their replacement. Each is precise: plain English about this project never needs it. */
const replaced: readonly (readonly [RegExp, string])[] = [
  [/\bwho(?:m)?ever\b/gi, 'name the actor: caller, holder, process, sender'],
  [/\bcomes? past\b/gi, 'say what finds or skips it'],
  [/\bof it there\b/gi, 'name the subject'],
  [/\b(?:stands?|standing|stood) (?:in|there|under|behind|beside|here|above|on|at|once)\b/gi, 'rows exist'],
  [/\ball the same\b/gi, 'anyway, or nothing'],
  [/\bg(?:ave|ives?|iven) way\b/gi, 'is dropped'],
  [/\bthe door\b/gi, 'intake'],
  [/\bt(?:ells?|old) of\b/gi, 'reports, reported'],
  [/\b(?:is|are) said to be\b/gi, 'is reported'],
  [/\bin motion\b/gi, 'in progress, due'],
  [/\b(?:bury|buried|buries)\b/gi, 'reap'],
  [/\bof ours\b/gi, 'our'],
  [/\bg(?:oes|oing|one) on\b/gi, 'continues, keeps running'],
  [/\bmend(?:s|ed|ing)?\b/gi, 'fix, repair'],
  [/\bso many\b/gi, 'this many'],
  [/, say[.,:;)]/g, 'for example, such as'],
  [/(?<!`)\banew\b/gi, 'again'],
];

/** A title that starts so is the second half of a sentence whose first is its `describe`. */
const halves: readonly (readonly [RegExp, string])[] = [
  [
    /^(?:of|for|with|by|to|in|into|on|at|from|without|under|behind|beside|than|that|who|whom|whose|which|and|but|or|nor|also)\b/i,
    'start with the subject or its verb',
  ],
  [/^(?:is|are|was|were|be|been)\b/i, 'name the subject, or say what it does'],
  [/^(?:have|do|go|come|keep|take|make|give|say|lose|get|hold|leave)\b/i, 'say what Parley does'],
];

/** Phrases that only titles used. */
const replacedInTitles: readonly (readonly [RegExp, string])[] = [
  [/\bwhat is no(?:t|ne)?\b/gi, 'name it: invalid JSON, an unknown command'],
  [/\bin hand\b/gi, 'running, pending'],
  [/\bstands? still\b/gi, 'is suspended, hangs'],
  [/\bwhat (?:waits|stands|comes|goes)\b/gi, 'name it: waiting messages, the preview'],
];

/** Names that are spelled or built otherwise, with their replacement. */
const oddNames: readonly (readonly [RegExp, string])[] = [
  [/^(?:most|least)[A-Z]/, 'max…, min…'],
  [
    /(?:uthor|ategor|inal|nitial|inim|axim|ormal|ptim|rgan|riorit|ecogn|anit|erial|ummar|ynchron)is(?:e[drs]?|ing|ation)(?![a-z])/,
    '-ize, as in summarize',
  ],
  [/ehaviour|olour|avour|eighbour|atalogue|abelled|ialled|ialling/, 'US spelling'],
  [
    /^(?:actApart|believeMs|besideMs|blinkMs|courtesies|forgetDeeds|goOn|hush|inRow|isStanding|letGo|mayStandSince|motion|movers|sayFollowing|stoodMs|takingTurns|tellAll|untold|workingInTurn)$/,
    'say plainly what it is or does',
  ],
];

/** Persisted values; the keys of texts are persisted, too, because people override them. */
const persisted = /^(?:model_)?unauthorised$/;

const tops = /^(?:src|channels|plugins|bench|scripts)\//;

/** Block comments, and each run of line comments. */
const comments = /\/\*[\s\S]*?\*\/|^[ \t]*\/\/[^\n]*(?:\n[ \t]*\/\/[^\n]*)*|(?<=\s)\/\/ [^\n]*/gm;

/** Comments and documents use the words of the glossary, not those it replaced. */
export const wordsArePlain: Rule = (tree) => [
  ...tree.modules
    .filter(({ path }) => tops.test(path))
    .flatMap(({ path, text }) =>
      [...text.matchAll(comments)].flatMap(([comment]) => [
        ...(opening.test(comment.trim())
          ? [`${path}: “${firstWords(comment)}”: start with a verb or a noun`]
          : []),
        ...findReplaced(path, comment.replace(/\n\s*(?:\*|\/\/) ?/g, ' ')),
      ]),
    ),
  // Pitfalls quote the names of tests.
  ...documentsOf(tree.root)
    .filter((document) => document !== 'docs/pitfalls.md')
    .flatMap((document) => {
      const text = readFileSync(join(tree.root, document), 'utf8');
      return findReplaced(document, text.replace(/```[\s\S]*?```|`[^`\n]*`/g, '').replace(/\s+/g, ' '));
    }),
];

/** A declared name is what a native engineer would call it. */
export const identifiersArePlain: Rule = (tree) =>
  tree.modules
    .filter(({ path }) => /^(?:src|channels|plugins)\//.test(path) && !path.startsWith('src/texts/'))
    .flatMap(({ path, declared }) =>
      declared
        .filter(({ name }) => !persisted.test(name))
        .flatMap(({ name, line }) =>
          oddNames
            .filter(([form]) => form.test(name))
            .map(([, instead]) => `${path}:${line}: “${name}”: ${instead}`),
        ),
    );

/** The title of a test is a sentence that makes sense without its `describe`. */
export const titlesArePlain: Rule = (tree) =>
  tree.modules.flatMap(({ path, titles }) =>
    titles.flatMap(({ text, line }) =>
      findReplaced(`${path}:${line}`, text, [...halves, ...replaced, ...replacedInTitles]),
    ),
  );

function findReplaced(where: string, text: string, phrases = replaced): readonly string[] {
  return phrases.flatMap(([phrase, instead]) =>
    [...text.matchAll(new RegExp(phrase, 'gi'))].map(([found]) => `${where}: “${found}”: ${instead}`),
  );
}

function firstWords(comment: string): string {
  return comment.trim().slice(0, 60).replace(/\s+/g, ' ');
}
