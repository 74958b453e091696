// Regions that scroll within themselves can be reached by keyboard, and have a name.
const named = (element, name) => {
  element.tabIndex = 0;
  element.setAttribute("role", "region");
  element.setAttribute("aria-label", name);
};
const above = (element) => {
  const section = element.closest("section");
  return section ? section.querySelector("h1, h2, h3, h4").firstChild.textContent.trim() : "page";
};
const counted = {};
for (const [selector, what] of [[".table-wrapper", "Table"], ["article pre", "Text"], [".math-wrapper", "Formula"]]) {
  for (const element of document.querySelectorAll(selector)) {
    const name = `${what}: ${above(element)}`;
    counted[name] = (counted[name] || 0) + 1;
    const label = counted[name] > 1 ? `${name} (${counted[name]})` : name;
    if (element.scrollWidth > element.clientWidth || what === "Table") named(element, label);
  }
}
