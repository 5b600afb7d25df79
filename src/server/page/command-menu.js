import htm from '/vendor/htm.js';
import { h } from '/vendor/preact.js';

const html = htm.bind(h);

/** Returns the commands that a draft may become; none unless it is a slash and letters. */
export function commandsFor(draft, commands) {
  const typed = /^\/([a-z]*)$/i.exec(draft)?.[1].toLowerCase();
  return typed === undefined ? [] : commands.filter(({ name }) => name.startsWith(typed));
}

/** Returns a command as it is typed, with a space if an argument follows. */
export function commandText({ name, argument }) {
  return `/${name}${argument === undefined ? '' : ' '}`;
}

/** Attributes by which the composer, which keeps the focus, describes the menu to screen readers. */
export function menuAttributes(items, at) {
  return items.length === 0
    ? {}
    : { 'aria-controls': 'commands', 'aria-autocomplete': 'list', 'aria-activedescendant': `command-${at}` };
}

/** The menu above the composer; `at` is the index of the selected command. */
export function CommandMenu({ items, at, onPick }) {
  if (items.length === 0) return null;
  return html`<ul class="commands card" id="commands" role="listbox" aria-label="Commands" tabindex="-1">${items.map(
    (command, index) => html`<li key=${command.name} id=${`command-${index}`} role="option"
      aria-selected=${index === at ? 'true' : 'false'} onClick=${() => onPick(command)}>
      <span class="name">/${command.name}</span> <span class="argument">${command.argument}</span>
      <span class="detail">${command.description}</span></li>`,
  )}</ul>`;
}
