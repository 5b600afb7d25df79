import type { ChannelSetUp } from '#contracts/channel.ts';

export const setUp: ChannelSetUp = {
  label: 'Discord',
  hint: 'a bot token and an invitation',
  how: 'Create an application at https://discord.com/developers. On its Bot page, turn on Message Content Intent and copy the token. To invite the bot to your server: docs/discord.md',
  fields: [{ variable: 'DISCORD_BOT_TOKEN', question: 'Bot token', isSecret: true }],
  ownerId: { example: '80351110224678912', form: /^\d{15,22}$/ },
};
