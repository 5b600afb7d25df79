import { z } from 'zod';
import { ParleyError } from '#contracts/errors.ts';
import { fileSchema } from './schema.ts';
import { suggestName } from './suggestion.ts';

/** One problem: where it is, what it is, and the fix. Contains no secrets. */
export type Problem = { readonly where: string; readonly what: string };

/** Creates one error with all problems, so that they can be fixed together. */
export function configError(problems: readonly Problem[]): ParleyError {
  const lines = problems.map(({ where, what }) => `  - ${where}: ${what}`);
  const head =
    problems.length === 1
      ? 'The configuration has a problem:'
      : `The configuration has ${problems.length} problems:`;
  return new ParleyError('config_invalid', [head, ...lines].join('\n'));
}

type Issue = z.core.$ZodIssue;

/** Describes an issue in sentences, for the file's own schema or, with `schema`, for a part's settings. */
export function describeIssue(issue: Issue, raw: unknown, schema?: z.ZodType): readonly string[] {
  if (issue.code === 'unrecognized_keys')
    return issue.keys.map((key) => describeUnknownKey(key, namesAt(issue.path, schema)));
  if (issue.code === 'custom') return [issue.message];
  const value = valueAt(raw, issue.path);
  if (value === undefined) return ['is missing; add it'];
  // A secret is often written in place of its variable's name.
  const shown = /Env$/.test(String(issue.path.at(-1))) ? 'the value' : show(value);
  return [`${shown} ${describeMismatch(issue, value)}`];
}

function describeMismatch(issue: Issue, value: unknown): string {
  switch (issue.code) {
    case 'invalid_value': {
      const allowed = issue.values.map(String);
      const meant = typeof value === 'string' ? suggestName(value, allowed) : undefined;
      return `isn't allowed; use one of: ${allowed.join(', ')}${meant ? `. Did you mean "${meant}"?` : ''}`;
    }
    case 'invalid_type':
      return `isn't ${withArticle(issue.expected)}; write ${withArticle(issue.expected)}`;
    case 'too_big':
      return `is too large; use at most ${issue.maximum}`;
    case 'too_small':
      return `is too small; use at least ${issue.minimum}`;
    case 'invalid_key':
      return issue.issues.map((inner) => inner.message).join(', ');
    default:
      return issue.message;
  }
}

function withArticle(noun: string): string {
  if (noun === 'int') return 'a whole number';
  return /^[aeiou]/.test(noun) ? `an ${noun}` : `a ${noun}`;
}

function show(value: unknown): string {
  const text = JSON.stringify(value) ?? String(value);
  return text.length > 80 ? `${text.slice(0, 77)}…` : text;
}

/** Names that people write in the file although they belong in the environment. */
const environmentOnly: Readonly<Record<string, string>> = {
  token: 'PARLEY_TOKEN',
  apiKey: 'the variable of its provider, for example OPENAI_API_KEY,',
  apiKeys: 'the variable of its provider, for example OPENAI_API_KEY,',
  redisUrl: 'REDIS_URL',
  databaseUrl: 'DATABASE_URL',
};

/** Says what to write instead of an unknown name, based on the known ones. */
export function describeUnknownKey(key: string, known: readonly string[]): string {
  const variable = environmentOnly[key];
  if (variable !== undefined)
    return `"${key}" doesn't belong in the file; set ${variable} in the environment`;
  const meant = suggestName(key, known);
  return meant === undefined
    ? `"${key}" isn't a known name; remove it, or use one of: ${known.join(', ')}`
    : `"${key}" isn't a known name. Did you mean "${meant}"?`;
}

/** Returns the names that a schema allows under `path`; the default is the file's schema. */
export function namesAt(path: readonly PropertyKey[], of: z.ZodType = fileSchema): readonly string[] {
  let at = contentOf(of);
  for (const step of path) at = contentOf(below(at, String(step)));
  return at instanceof z.ZodObject ? Object.keys(at.shape).filter((name) => name !== '$schema') : [];
}

type Schema = z.core.$ZodType | undefined;

function below(schema: Schema, step: string): Schema {
  if (schema instanceof z.ZodObject) return new Map<string, Schema>(Object.entries(schema.shape)).get(step);
  if (schema instanceof z.ZodArray) return schema.element;
  return schema instanceof z.ZodRecord ? schema.valueType : undefined;
}

/** Returns the schema without wrappers that make it optional or transform its value. */
function contentOf(schema: Schema): Schema {
  if (schema instanceof z.ZodPipe) return contentOf(schema.in);
  const isWrapped =
    schema instanceof z.ZodOptional || schema instanceof z.ZodDefault || schema instanceof z.ZodPrefault;
  return isWrapped ? contentOf(schema.unwrap()) : schema;
}

/** Returns the value at `path`; undefined if there is none. */
export function valueAt(raw: unknown, path: readonly PropertyKey[]): unknown {
  let value = raw;
  for (const step of path) {
    if (typeof value !== 'object' || value === null) return undefined;
    value = Reflect.get(value, step);
  }
  return value;
}

export function showPath(path: readonly PropertyKey[]): string {
  let text = '';
  for (const step of path) {
    if (typeof step === 'number') text += `[${step}]`;
    else if (/^[\w$-]+$/.test(String(step))) text += text === '' ? String(step) : `.${String(step)}`;
    else text += `[${JSON.stringify(String(step))}]`;
  }
  return text === '' ? 'the top level' : text;
}
