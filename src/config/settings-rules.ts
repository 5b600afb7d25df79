import type { Credentials } from './credentials.ts';
import type { Problem } from './problem.ts';
import type { FileSettings } from './schema.ts';
import { suggestName } from './suggestion.ts';

/** Finds problems that no single value reveals: settings that contradict each other. */
export function findSettingsProblems(settings: FileSettings, credentials: Credentials): readonly Problem[] {
  return [
    ...findAgentProblems(settings),
    ...findBindingProblems(settings),
    ...findIdentityProblems(settings),
    ...findNameProblems(settings),
    ...findScopeProblems(settings),
    ...findChannelProblems(settings, credentials),
    ...findOutboxProblems(settings),
    ...findModelProblems(settings),
    ...findWebhookProblems(settings),
  ];
}

function findAgentProblems(settings: FileSettings): readonly Problem[] {
  const ids = settings.agents.map((agent) => agent.id);
  const problems: Problem[] = [];
  for (const [index, id] of ids.entries()) {
    if (ids.indexOf(id) !== index) {
      problems.push({
        where: `agents[${index}].id`,
        what: `"${id}" is used twice; give each agent its own id`,
      });
    }
  }
  for (const [index, { subagents }] of settings.agents.entries()) {
    for (const id of subagents.allowAgents ?? []) {
      if (id === '*' || ids.includes(id)) continue;
      problems.push({ where: `agents[${index}].subagents.allowAgents`, what: unknownAgent(id, ids) });
    }
  }
  const { defaultAgent } = settings;
  if (defaultAgent !== undefined && !ids.includes(defaultAgent)) {
    problems.push({ where: 'defaultAgent', what: unknownAgent(defaultAgent, ids) });
  }
  return problems;
}

function findWebhookProblems({ webhooks, agents }: FileSettings): readonly Problem[] {
  const ids = agents.map(({ id }) => id);
  return Object.entries(webhooks).flatMap(([name, { agent }]) =>
    agent === undefined || ids.includes(agent)
      ? []
      : [{ where: `webhooks.${name}.agent`, what: unknownAgent(agent, ids) }],
  );
}

function findBindingProblems(settings: FileSettings): readonly Problem[] {
  const ids = settings.agents.map((agent) => agent.id);
  return settings.bindings.flatMap((binding, index) => {
    const where = `bindings[${index}]`;
    if (!ids.includes(binding.agent)) {
      return [{ where: `${where}.agent`, what: unknownAgent(binding.agent, ids) }];
    }
    if (Object.keys(binding).length === 1)
      return [
        {
          where,
          what: 'matches everything; name a channel, account, conversation, peer or parent, or set defaultAgent',
        },
      ];
    return [
      ...findIdProblems(where, binding, Object.keys(settings.channels)),
      ...findAccountProblems(where, binding, settings),
    ];
  });
}

/** A person's or a bot's id on a network: a number or an ACI. */
const networkId = /^(?:\d+|[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12})$/;

function findAccountProblems(
  where: string,
  { account }: FileSettings['bindings'][number],
  { channels: { telegram, discord, signal } }: FileSettings,
): readonly Problem[] {
  const known = [telegram, discord, signal].flatMap(({ accounts }) => Object.keys(accounts));
  if (account === undefined || known.includes(account) || networkId.test(account)) return [];
  const meant = suggestName(account, known);
  const hint = meant === undefined ? 'Add it there, or use the id of the bot.' : `Did you mean "${meant}"?`;
  return [{ where: `${where}.account`, what: `"${account}" isn't a name under accounts. ${hint}` }];
}

/** Finds ids written with their channel, as elsewhere, which would match nothing in a binding. */
function findIdProblems(
  where: string,
  binding: FileSettings['bindings'][number],
  channels: readonly string[],
): readonly Problem[] {
  return (['peer', 'conversation', 'parent'] as const).flatMap((name) => {
    const [, channel = '', id] = /^([a-z]+):(.+)$/.exec(binding[name] ?? '') ?? [];
    if (!channels.includes(channel)) return [];
    const what = `must be just the id in a binding; write "channel": "${channel}", "${name}": "${id}"`;
    return [{ where: `${where}.${name}`, what }];
  });
}

function unknownAgent(id: string, known: readonly string[]): string {
  return `"${id}" isn't a known agent; use one of: ${known.join(', ')}, or add it to agents`;
}

/** Finds accounts in two identities: such a person would have two sessions, and which one applies would be chance. */
function findIdentityProblems(settings: FileSettings): readonly Problem[] {
  const identityOf = new Map<string, string>();
  const problems: Problem[] = [];
  for (const [identity, peers] of Object.entries(settings.identityLinks)) {
    for (const peer of peers) {
      const other = identityOf.get(peer);
      if (other !== undefined && other !== identity) {
        problems.push({
          where: `identityLinks.${identity}`,
          what: `"${peer}" already belongs to "${other}"; keep it in one identity`,
        });
      }
      identityOf.set(peer, identity);
    }
  }
  return problems;
}

/** With `per-peer`, only a person's id names their conversation, so an identity with the same name would share it. */
function findNameProblems({ dmScope, identityLinks }: FileSettings): readonly Problem[] {
  if (dmScope !== 'per-peer') return [];
  const names = Object.keys(identityLinks).filter((name) => networkId.test(name));
  return names.map((name) => ({
    where: `identityLinks.${name}`,
    what: `"${name}" may be someone else's id, and they would share the conversation; use a name that isn't an id`,
  }));
}

/** Reports that anyone could read and continue the owner's conversation. */
function findScopeProblems({ dmScope, access: { dmPolicy } }: FileSettings): readonly Problem[] {
  if (dmScope !== 'main' || dmPolicy !== 'open') return [];
  return [
    {
      where: 'dmScope',
      what: '"main" puts everyone who may write into one conversation, and access.dmPolicy "open" lets strangers write; change one of the two',
    },
  ];
}

function findChannelProblems(settings: FileSettings, credentials: Credentials): readonly Problem[] {
  const { telegram, discord, signal } = settings.channels;
  const { telegramToken, discordToken } = credentials;
  const needed = [
    { id: 'telegram', channel: telegram, has: telegramToken, what: withoutToken('TELEGRAM_BOT_TOKEN') },
    { id: 'discord', channel: discord, has: discordToken, what: withoutToken('DISCORD_BOT_TOKEN') },
    {
      ...{ id: 'signal', channel: signal, has: signal.apiUrl },
      what: "is on, but SIGNAL_API_URL isn't set; set it in the environment, or turn it off",
    },
  ];
  return needed.flatMap(({ id, channel, has, what }) =>
    channel.enabled === true && has === undefined ? [{ where: `channels.${id}.enabled`, what }] : [],
  );
}

function withoutToken(variable: string): string {
  return `is on, but there is no token; set ${variable} in the environment, or turn it off`;
}

function findOutboxProblems(settings: FileSettings): readonly Problem[] {
  const { minBackoffMs, maxBackoffMs } = settings.outbox;
  return minBackoffMs > maxBackoffMs
    ? [
        {
          where: 'outbox.minBackoffMs',
          what: `${minBackoffMs} is above maxBackoffMs (${maxBackoffMs}); swap them`,
        },
      ]
    : [];
}

/** Finds answers so long that no room is left for a prompt, so that the server would refuse every call. */
function findModelProblems({ models }: FileSettings): readonly Problem[] {
  return Object.entries(models).flatMap(([alias, { window, maxTokens }]) => {
    if (window === undefined || maxTokens === undefined || maxTokens < window) return [];
    const what = `${maxTokens} leaves no room for a prompt in the window of ${window}; use a quarter of it or less`;
    return [{ where: `models.${alias}.maxTokens`, what }];
  });
}
