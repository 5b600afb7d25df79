import { Form, invalidForm, refuse } from './errors.ts';
import { type Answer, idOf, noContent, ok, type Request, type Routes } from './platform.ts';
import type { Wire } from './types.ts';

const both = (verb: string, rest: string, handler: Routes[string]): Routes => ({
  [`${verb} /applications/:application/commands${rest}`]: handler,
  [`${verb} /applications/:application/guilds/:guild/commands${rest}`]: handler,
});

/** Application commands: global ones and those of a guild. */
export const commandRoutes: Routes = {
  ...both('GET', '', (request) => ok(commandsOf(request))),
  ...both('PUT', '', replaceAll),
  ...both('POST', '', upsert),
  ...both('GET', '/:command', (request) => ok(commandOf(request))),
  ...both('PATCH', '/:command', (request) => {
    const before = commandOf(request);
    const changed = { ...before, ...request.body, id: before.id };
    return ok(store(request, changed));
  }),
  ...both('DELETE', '/:command', (request) => {
    const { id } = commandOf(request);
    write(
      request,
      commandsOf(request).filter((one) => one.id !== id),
    );
    return noContent;
  }),
};

const scopeOf = (request: Request): string => request.ids.guild ?? 'global';

function commandsOf(request: Request): readonly Wire[] {
  const { world, commands } = request.platform;
  if (idOf(request, 'application') !== world.bot.id) throw refuse('missingAccess');
  return commands.get(scopeOf(request)) ?? [];
}

function commandOf(request: Request): Wire {
  const command = commandsOf(request).find((one) => one.id === idOf(request, 'command'));
  if (command === undefined) throw refuse('unknownCommand');
  return command;
}

function write(request: Request, commands: readonly Wire[]): void {
  request.platform.commands.set(scopeOf(request), [...commands]);
}

function replaceAll(request: Request): Answer {
  const before = commandsOf(request);
  const wanted = request.list as readonly Wire[];
  if (wanted.length > 100) throw invalidForm('', 'BASE_TYPE_MAX_LENGTH', 'Must be 100 or fewer in length.');
  const form = new Form();
  const names = wanted.map((one) => `${String(one.type ?? 1)} ${String(one.name)}`);
  for (const [index, one] of wanted.entries()) {
    check(one, form, `${index}.`);
    if (names.indexOf(names[index] ?? '') !== index)
      form.add(`${index}`, 'APPLICATION_COMMANDS_DUPLICATE_NAME', 'Application command names must be unique');
  }
  form.check();
  const after = wanted.map((one) => stored(request, one, sameAs(before, one)));
  write(request, after);
  return ok(after);
}

/** Creates a command; one with an existing name replaces the old one. */
function upsert(request: Request): Answer {
  const known = sameAs(commandsOf(request), request.body);
  const command = store(request, known === undefined ? request.body : { ...request.body, id: known.id });
  return { status: known === undefined ? 201 : 200, body: command };
}

const sameAs = (list: readonly Wire[], wanted: Wire): Wire | undefined =>
  list.find((one) => one.name === wanted.name && one.type === (wanted.type ?? 1));

function store(request: Request, wanted: Wire): Wire {
  const form = new Form();
  check(wanted, form, '');
  form.check();
  const list = commandsOf(request);
  const command = stored(
    request,
    wanted,
    list.find((one) => one.id === wanted.id),
  );
  const others = list.filter((one) => one.id !== command.id);
  if (others.length >= 100) throw invalidForm('', 'BASE_TYPE_MAX_LENGTH', 'Must be 100 or fewer in length.');
  write(request, [...others, command]);
  return command;
}

function check(command: Wire, form: Form, under: string): void {
  checkName(command.name, form, `${under}name`);
  const isChatInput = (command.type ?? 1) === 1;
  if (isChatInput) checkDescription(command.description, form, `${under}description`);
  const options = (command.options ?? []) as readonly Wire[];
  if (options.length > 25) form.tooLong(`${under}options`, 25);
  let isOptionalSeen = false;
  for (const [index, option] of options.entries()) {
    const where = `${under}options.${index}`;
    checkName(option.name, form, `${where}.name`);
    checkDescription(option.description, form, `${where}.description`);
    if (option.required === true && isOptionalSeen)
      form.add(
        where,
        'APPLICATION_COMMAND_OPTIONS_REQUIRED_INVALID',
        'Required options must be placed before non-required options',
      );
    if (option.required !== true) isOptionalSeen = true;
    if (((option.choices ?? []) as readonly unknown[]).length > 25) form.tooLong(`${where}.choices`, 25);
  }
}

function checkName(value: unknown, form: Form, path: string): void {
  if (typeof value !== 'string') form.add(path, 'BASE_TYPE_REQUIRED', 'This field is required');
  else if (!/^[-_'\p{L}\p{N}\p{sc=Deva}\p{sc=Thai}]{1,32}$/u.test(value) || value !== value.toLowerCase())
    form.add(path, 'APPLICATION_COMMAND_INVALID_NAME', 'Command name is invalid');
}

function checkDescription(value: unknown, form: Form, path: string): void {
  if (typeof value !== 'string' || value === '')
    form.add(path, 'BASE_TYPE_REQUIRED', 'This field is required');
  else if (value.length > 100) form.add(path, 'BASE_TYPE_BAD_LENGTH', 'Must be between 1 and 100 in length.');
}

/** Returns a command as stored and shown: with the platform's own fields, without `required: false` or empty options. */
function stored({ platform, ids }: Request, wanted: Wire, before: Wire | undefined): Wire {
  const { world } = platform;
  const options = ((wanted.options ?? []) as readonly Wire[]).map(({ required, ...option }) => ({
    ...option,
    ...(required === true ? { required } : {}),
  }));
  const { options: _, id: __, version: ___, ...rest } = wanted;
  return {
    application_id: world.bot.id,
    ...(ids.guild === undefined ? { dm_permission: true, contexts: null } : { guild_id: ids.guild }),
    type: 1,
    description: '',
    default_member_permissions: null,
    name_localizations: null,
    description_localizations: null,
    nsfw: false,
    integration_types: [0],
    ...rest,
    id: before?.id ?? world.ids.next(),
    version: world.ids.next(),
    ...(options.length === 0 ? {} : { options }),
  };
}
