<xsl:stylesheet version="1.0" xmlns:xsl="http://www.w3.org/1999/XSL/Transform"
    xmlns:ql="urn:quadloom:xslt" xmlns:r="http://example.org/recipe"
    xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:s="http://schema.org/"
    exclude-result-prefixes="ql r">
  <!-- quadloom: root="{http://example.org/recipe}recipe" -->
  <xsl:param name="url"/>
  <xsl:template match="/r:recipe">
    <rdf:RDF>
      <s:Recipe rdf:about="{$url}">
        <s:name><xsl:value-of select="r:name"/></s:name>
        <s:image rdf:resource="{ql:resolve(r:photo, $url)}"/>
        <xsl:for-each select="r:ingredient">
          <s:recipeIngredient><xsl:value-of select="."/></s:recipeIngredient>
        </xsl:for-each>
      </s:Recipe>
    </rdf:RDF>
  </xsl:template>
</xsl:stylesheet>
