/** A bot of a few lines on discord.js, with the library's own settings. */
import { Client, GatewayIntentBits, Partials } from 'discord.js';
import { hear, required } from './turns.ts';

const { Guilds, GuildMessages, DirectMessages, MessageContent } = GatewayIntentBits;
const client = new Client({
  intents: [Guilds, GuildMessages, DirectMessages, MessageContent],
  partials: [Partials.Channel],
  rest: { api: required('DISCORD_API_BASE') },
});

client.on('messageCreate', ({ author, channel, content }) => {
  if (!author.bot && channel.isSendable()) hear(channel.id, content, (text) => channel.send(text));
});
client.once('clientReady', () => console.log('ready'));

await client.login(required('DISCORD_BOT_TOKEN'));
