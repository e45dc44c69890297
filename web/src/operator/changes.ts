/** The commands that change what the operator's page shows, with names to be put into them. */

export const changes = [
  { name: "tenant", command: "chatserve tenant add acme" },
  { name: "key", command: "chatserve key add --tenant acme --user ann" },
  { name: "limits", command: "chatserve tenant set acme --requests-per-minute 60" },
  { name: "prompt", command: "chatserve prompt add support --tenant acme --file support.txt" },
] as const;
