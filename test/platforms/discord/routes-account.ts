import { refuse } from './errors.ts';
import { applicationFlags } from './intents.ts';
import { isThread } from './permissions.ts';
import { type Answer, idOf, ok, type Platform, type Request, type Routes } from './platform.ts';
import type { Wire } from './types.ts';
import type { GuildState } from './world.ts';

/** The gateway's address, the bot itself, people and guilds. */
export const accountRoutes: Routes = {
  'GET /gateway': ({ platform }) => ok({ url: platform.gatewayUrl() }),
  'GET /gateway/bot': ({ platform }) =>
    ok({
      url: platform.gatewayUrl(),
      shards: 1,
      session_start_limit: {
        total: 1000,
        remaining: platform.identifiesLeft(),
        reset_after: 86_400_000,
        max_concurrency: 1,
      },
    }),
  'GET /users/@me': ({ platform }) => ok({ ...platform.render.user(platform.world.bot), verified: true }),
  'GET /users/@me/guilds': ({ platform }) =>
    ok(memberships(platform).map(({ id, name }) => ({ id, name, icon: null, owner: false, features: [] }))),
  // A bot can't list its direct conversations.
  'GET /users/@me/channels': () => ok([]),
  'POST /users/@me/channels': openDm,
  'GET /users/:user': (request) => {
    const user = request.platform.world.users.get(idOf(request, 'user'));
    if (user === undefined) throw refuse('unknownUser');
    return ok(request.platform.render.user(user));
  },
  'GET /applications/@me': ({ platform }) => ok(application(platform)),
  'GET /oauth2/applications/@me': ({ platform }) => ok(application(platform)),
  'GET /guilds/:guild': (request) => ok(request.platform.render.guildObject(guildOf(request))),
  'GET /guilds/:guild/channels': (request) => {
    const { world, render } = request.platform;
    const { id } = guildOf(request);
    const here = [...world.channels.values()].filter((one) => one.guildId === id && !isThread(one.type));
    return ok(here.map((channel) => render.channel(channel)));
  },
  'GET /guilds/:guild/threads/active': listActiveThreads,
  'GET /guilds/:guild/members/:user': (request) => {
    const guild = guildOf(request);
    const member = guild.members.get(idOf(request, 'user'));
    if (member === undefined) throw refuse('unknownMember');
    return ok(request.platform.render.memberWithUser(member));
  },
};

export function application({ world, privileged }: Platform): Wire {
  return {
    id: world.bot.id,
    name: world.bot.username,
    icon: null,
    description: '',
    bot_public: false,
    bot_require_code_grant: false,
    verify_key: '0'.repeat(64),
    team: null,
    flags: applicationFlags(privileged),
  };
}

export const memberships = ({ world }: Platform): readonly GuildState[] =>
  [...world.guilds.values()].filter((guild) => guild.isBotIn);

export function guildOf(request: Request): GuildState {
  const guild = request.platform.world.guilds.get(idOf(request, 'guild'));
  if (guild === undefined) throw refuse('unknownGuild');
  if (!guild.isBotIn || guild.isUnavailable) throw refuse('missingAccess');
  return guild;
}

/** Opens a direct conversation. That works even with somebody who blocks messages; only the send is refused. */
function openDm({ platform, body }: Request): Answer {
  const user = platform.world.users.get(String(body.recipient_id));
  if (user === undefined || user.id === platform.world.bot.id) throw refuse('invalidRecipient');
  return ok(platform.render.channel(platform.world.dmWith(user)));
}

function listActiveThreads(request: Request): Answer {
  const { world, render } = request.platform;
  const { id } = guildOf(request);
  const threads = [...world.channels.values()].filter(
    (one) => one.guildId === id && one.thread?.isArchived === false && world.botMay(one, 'viewChannel'),
  );
  const joined = threads.filter((one) => one.thread?.members.has(world.bot.id));
  return ok({
    threads: threads.map((one) => render.channel(one)),
    members: joined.map((one) => render.threadMember(one, world.bot.id)),
  });
}
