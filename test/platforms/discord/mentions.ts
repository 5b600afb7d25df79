import { type Form, invalidForm } from './errors.ts';
import { isSnowflake } from './snowflake.ts';
import type { Mentioned } from './types.ts';

export type AllowedMentions = {
  readonly parse: readonly string[];
  readonly users: readonly string[];
  readonly roles: readonly string[];
  readonly repliedUser: boolean;
};

/** What applies if a request says nothing: everything in the text pings, and so does a reply. */
export const allAllowed: AllowedMentions = {
  parse: ['everyone', 'roles', 'users'],
  users: [],
  roles: [],
  repliedUser: true,
};

/** The same for answers to interactions. */
export const usersAllowed: AllowedMentions = { ...allAllowed, parse: ['users'] };

export function readAllowedMentions(value: unknown, usual: AllowedMentions, form: Form): AllowedMentions {
  if (value === undefined || value === null) return usual;
  if (typeof value !== 'object') {
    form.add('allowed_mentions', 'MODEL_TYPE_CONVERT', 'Only dictionaries may be used in a ModelType');
    return usual;
  }
  const given = value as Readonly<Record<string, unknown>>;
  const list = (name: string): readonly string[] => {
    const items = given[name] ?? [];
    if (Array.isArray(items)) return items.map(String);
    form.add(`allowed_mentions.${name}`, 'LIST_TYPE_CONVERT', 'Only iterables may be used in a ListType');
    return [];
  };
  const [parse, users, roles] = [list('parse'), list('users'), list('roles')];
  for (const [index, kind] of parse.entries())
    if (!allAllowed.parse.includes(kind))
      form.add(
        `allowed_mentions.parse.${index}`,
        'BASE_TYPE_CHOICES',
        "Value must be one of ('everyone', 'users', 'roles').",
      );
  for (const [name, ids] of [
    ['users', users],
    ['roles', roles],
  ] as const) {
    if (ids.length > 100)
      form.add(`allowed_mentions.${name}`, 'BASE_TYPE_MAX_LENGTH', 'Must be 100 or fewer in length.');
    if (parse.includes(name) && ids.length > 0)
      form.add(
        'allowed_mentions',
        'MESSAGE_ALLOWED_MENTIONS_PARSE_EXCLUSIVE',
        `parse:["${name}"] and ${name}: [ids...] are mutually exclusive.`,
      );
    for (const id of ids) if (!isSnowflake(id)) throw snowflakeExpected(`allowed_mentions.${name}`, id);
  }
  return { parse, users, roles, repliedUser: given.replied_user === true };
}

export const snowflakeExpected = (path: string, value: unknown) =>
  invalidForm(path, 'NUMBER_TYPE_COERCE', `Value "${String(value)}" is not snowflake.`);

export type MentionScope = {
  readonly isUser: (id: string) => boolean;
  /** Roles that this author may ping. */
  readonly isRole: (id: string) => boolean;
  readonly mayPingEveryone: boolean;
  /** The author of the message being replied to. */
  readonly repliedUser: string | undefined;
};

/** Returns whom a text pings. Nothing inside code does. */
export function findMentions(text: string, allowed: AllowedMentions, scope: MentionScope): Mentioned {
  const plain = text.replaceAll(/```[\s\S]*?```|`[^`\n]+`/g, ' ');
  const ids = (pattern: RegExp) => [...plain.matchAll(pattern)].map((match) => match[1] ?? '');
  const users = ids(/<@!?(\d+)>/g).filter(
    (id) => scope.isUser(id) && (allowed.parse.includes('users') || allowed.users.includes(id)),
  );
  const roles = ids(/<@&(\d+)>/g).filter(
    (id) => scope.isRole(id) && (allowed.parse.includes('roles') || allowed.roles.includes(id)),
  );
  if (scope.repliedUser !== undefined && allowed.repliedUser) users.push(scope.repliedUser);
  const isEveryone =
    /@(?:everyone|here)\b/.test(plain) && allowed.parse.includes('everyone') && scope.mayPingEveryone;
  return { isEveryone, roles: [...new Set(roles)], users: [...new Set(users)] };
}

export const nobody: Mentioned = { isEveryone: false, roles: [], users: [] };
